"""What each machine is: its row, its states, and the table of its moves."""
