-- The entity that plays the player, and whose state is newer than the record.
ALTER TABLE purview_players ADD COLUMN IF NOT EXISTS holder bigint;
CREATE UNIQUE INDEX IF NOT EXISTS purview_players_held ON purview_players (cluster, holder)
    WHERE holder IS NOT NULL;
