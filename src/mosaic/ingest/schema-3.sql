-- Version 3: the time of the points of a curve. NULL: stored by an older MOSAIC.

ALTER TABLE rollups ADD COLUMN ts_last INTEGER;  -- ns, of the bucket's last point
ALTER TABLE chunks ADD COLUMN times BLOB;        -- little-endian int64, ns: one per point, or the first and the last one; see rollup.py
