-- Which cluster this is, of all that ever had this name: 32 hexadecimal digits.
CREATE TABLE IF NOT EXISTS purview_clusters (cluster text NOT NULL PRIMARY KEY, id text NOT NULL);
