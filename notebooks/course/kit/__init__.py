"""What several lessons share: predictions, checkers, cards, drawings, ranks, traces, and the set-up."""
