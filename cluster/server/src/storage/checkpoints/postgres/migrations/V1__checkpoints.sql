-- Two states of each region alternate, so that a save writes one only.
CREATE TABLE IF NOT EXISTS purview_regions (
    cluster text NOT NULL, scene text NOT NULL, region bigint NOT NULL, planes integer NOT NULL,
    epoch bigint NOT NULL, tick bigint NOT NULL, slot smallint NOT NULL,
    PRIMARY KEY (cluster, scene, region, planes));
CREATE TABLE IF NOT EXISTS purview_states (
    cluster text NOT NULL, scene text NOT NULL, region bigint NOT NULL, planes integer NOT NULL,
    slot smallint NOT NULL, epoch bigint NOT NULL, tick bigint NOT NULL, state bytea NOT NULL,
    PRIMARY KEY (cluster, scene, region, planes, slot));
ALTER TABLE purview_states ALTER COLUMN state SET STORAGE EXTERNAL;
CREATE TABLE IF NOT EXISTS purview_players (
    cluster text NOT NULL, name text NOT NULL, epoch bigint NOT NULL, place bytea NOT NULL,
    PRIMARY KEY (cluster, name));
