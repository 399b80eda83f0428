-- The order of a player's last positions: the session's number, then the cluster clock (milliseconds).
ALTER TABLE purview_players ADD COLUMN IF NOT EXISTS clock bigint NOT NULL DEFAULT 0;
-- Checkpoints that nobody could read, kept when an operator started their region empty.
CREATE TABLE IF NOT EXISTS purview_quarantine (
    cluster text NOT NULL, scene text NOT NULL, region bigint NOT NULL, planes integer NOT NULL,
    epoch bigint NOT NULL, tick bigint NOT NULL, state bytea NOT NULL,
    since timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (cluster, scene, region, planes, epoch, tick));
