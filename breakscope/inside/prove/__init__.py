"""The proof that a rewrite computes the same: runs inside the user's script, where its real arguments are."""
