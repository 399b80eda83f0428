-- The highest epoch whose owner has read the region's snapshots: saves of earlier owners come too late.
ALTER TABLE purview_regions ADD COLUMN IF NOT EXISTS claimed bigint NOT NULL DEFAULT 0;
