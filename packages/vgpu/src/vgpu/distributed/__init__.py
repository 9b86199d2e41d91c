"""What several GPUs do together: DataParallel's copies and threads, process groups and their collectives."""
