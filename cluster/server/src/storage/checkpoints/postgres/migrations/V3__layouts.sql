CREATE TABLE IF NOT EXISTS purview_layouts (
    cluster text NOT NULL, scene text NOT NULL, change bigint NOT NULL, layout bytea NOT NULL,
    PRIMARY KEY (cluster, scene));
