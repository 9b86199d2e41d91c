"""What any training can use, one file each: it needs torch alone, and it is made to be copied with its test."""
