"""What `kagzi lint` and workers find in the code of workflows."""
