"""`kagzi demo`: a shop that is open for business."""
