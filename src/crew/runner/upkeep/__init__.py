"""What people ask for to tidy up and to get work back: prune, clean, doctor, restore."""
