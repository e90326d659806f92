-- name: part_bounded_page
-- The rows of a page that fit a number of bytes, at least one, and how many the page has without that limit. Sizes are
-- summed before anything is sent: neither side holds more than the page. The length of a payload is known without
-- reading it; that of json is not, so the page is cut first by the stored size (compressed, at most the text), and then
-- by the text.
SELECT * FROM (
    SELECT e.*, sum(e.row_bytes) OVER (ROWS UNBOUNDED PRECEDING) AS page_bytes
    FROM (
        SELECT p.*, 256 + {text_bytes} AS row_bytes
        FROM (
            SELECT p.*, count(*) OVER () AS page_rows, sum(p.row_stored) OVER (ROWS UNBOUNDED PRECEDING) AS page_stored
            FROM (SELECT p.*, 256 + {stored_bytes} AS row_stored FROM ({page}) AS p) AS p
        ) AS p
        WHERE p.page_stored - p.row_stored <= :page_bytes::bigint
    ) AS e
) AS b
WHERE b.page_bytes <= :page_bytes OR b.page_bytes = b.row_bytes
