"""Models learned from released answers, at no cost in privacy."""
