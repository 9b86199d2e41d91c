"""Commands that may be started alone: each reads its own arguments."""
