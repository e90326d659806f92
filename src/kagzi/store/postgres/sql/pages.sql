-- name: part_bounded_page
-- As many rows of a page as fit a number of bytes, at least one, and how many the page had without that. Sums are made before
-- anything is sent: neither side holds more than the page. Payloads are not read for their length.
SELECT * FROM (
    SELECT q.*, sum(q.row_bytes) OVER (ROWS UNBOUNDED PRECEDING) AS page_bytes, count(*) OVER () AS page_rows
    FROM (SELECT p.*, 256 + {bytes_of_row} AS row_bytes FROM ({page}) AS p) AS q
) AS b
WHERE b.page_bytes <= {bytes} OR b.page_bytes = b.row_bytes
