"""What the board shows, as plain values: rows, order, filters, waves, the status line."""
