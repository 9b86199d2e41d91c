"""Helpers for any training, one file each, which needs torch alone and is made to be copied with its test."""
