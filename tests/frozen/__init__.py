"""What an earlier commit computed, against what this tree computes, on random worlds and under the same words."""
