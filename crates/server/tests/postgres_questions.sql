-- person / secret / typed
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type IN ('BASE TABLE', 'VIEW') ORDER BY table_name;

-- public|person|TABLE|NULL / public|secret|TABLE|NULL / public|typed|TABLE|NULL
SELECT "n"."nspname" AS "schema", "c"."relname" AS "name", CASE "c"."relkind" WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'v' THEN 'VIEW' WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE NULL END AS "type", "d"."description" AS "description" FROM "pg_catalog"."pg_class" AS "c" INNER JOIN "pg_catalog"."pg_namespace" AS "n" ON "c"."relnamespace" = "n"."oid" LEFT JOIN "pg_catalog"."pg_description" AS "d" ON ("c"."oid" = "d"."objoid") AND ("d"."objsubid" = 0) AND ("d"."classoid" = 'pg_class'::regclass) WHERE ("c"."relnamespace" = "n"."oid") AND ("n"."nspname" !~ '^information_schema|catalog_history|pg_') AND ("c"."relkind" = ANY(ARRAY['r', 'p', 'v', 'f', 'm'])) ORDER BY "type" ASC, "schema" ASC, "name" ASC;

-- id|int8|0|person|public|t|f / name|varchar|1|person|public|f|f
SELECT c.column_name AS name, c.udt_name AS "database-type", c.ordinal_position - 1 AS "database-position", c.table_name AS "table-name", c.table_schema AS "table-schema", pk.column_name IS NOT NULL AS "pk?", CASE WHEN c.is_identity = 'YES' THEN TRUE ELSE FALSE END FROM information_schema.columns AS c LEFT JOIN (SELECT tc.table_schema, tc.table_name, kc.column_name FROM information_schema.table_constraints AS tc INNER JOIN information_schema.key_column_usage AS kc ON tc.constraint_name = kc.constraint_name AND tc.table_schema = kc.table_schema AND tc.table_name = kc.table_name WHERE tc.constraint_type = 'PRIMARY KEY') AS pk ON c.table_schema = pk.table_schema AND c.table_name = pk.table_name AND c.column_name = pk.column_name WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' AND c.table_schema IN ('public') AND c.table_name = 'person' ORDER BY 3;

-- t|t
SELECT pg_catalog.has_schema_privilege('public', 'USAGE'), pg_catalog.has_table_privilege('me', '"public"."person"', 'SELECT');



-- 1500
SELECT current_setting('server_version_num')::int/100 AS version FROM pg_catalog.pg_namespace LIMIT 1;

-- 11|pg_catalog / 13000|information_schema / 2200|public
SELECT n.oid, n.nspname FROM pg_catalog.pg_namespace n ORDER BY length(nspname) * 0 + CASE nspname WHEN 'pg_catalog' THEN 1 WHEN 'information_schema' THEN 2 ELSE 3 END;

-- 5|bank|UTF8|NULL
SELECT db.oid, db.datname, pg_encoding_to_char(db.encoding), d.description FROM pg_catalog.pg_database db LEFT OUTER JOIN pg_catalog.pg_shdescription d ON db.oid = d.objoid WHERE datallowconn AND NOT datistemplate OR db.datname = 'bank' ORDER BY db.datname;

-- person|NULL|NULL|0 / secret|NULL|NULL|0 / typed|NULL|NULL|0
SELECT c.relname, d.description, pg_catalog.pg_get_expr(c.relpartbound, c.oid) as partition_expr, c.relpages FROM pg_catalog.pg_class c LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_class'::regclass WHERE c.relnamespace=2200 AND c.relkind not in ('i','I','c') ORDER BY 1;

-- person|id|1|NULL|int8 / person|name|2|NULL|varchar
SELECT c.relname,a.attname,a.attnum,pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def_value,t.typname FROM pg_catalog.pg_attribute a INNER JOIN pg_catalog.pg_class c ON (a.attrelid=c.oid) LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid=ad.adrelid AND a.attnum = ad.adnum) LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid) LEFT OUTER JOIN pg_catalog.pg_depend dep on dep.refobjid = a.attrelid AND dep.deptype = 'i' and dep.refobjsubid = a.attnum and dep.classid = dep.refclassid LEFT JOIN pg_catalog.pg_type t ON t.oid = a.atttypid WHERE NOT a.attisdropped AND c.relkind not in ('i','I','c') AND c.relname = 'person' ORDER BY a.attnum;

-- person_id_key|p|person|{1} / secret_id_key|p|secret|{1} / typed_id_key|p|typed|{1}
SELECT c.conname, c.contype, t.relname as tabrelname, c.conkey FROM pg_catalog.pg_constraint c INNER JOIN pg_catalog.pg_class t ON t.oid=c.conrelid LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid=c.confrelid LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_constraint'::regclass WHERE t.relnamespace = 2200 ORDER BY c.oid;

-- person_id_idx_btree|1|t|t|btree|CREATE UNIQUE INDEX person_id_idx_btree ON public.person USING btree (id)
SELECT c.relname, i.indkey, i.indisprimary, i.indisunique, am.amname, pg_catalog.pg_get_indexdef(i.indexrelid) FROM pg_catalog.pg_index i INNER JOIN pg_catalog.pg_class c ON c.oid=i.indexrelid INNER JOIN pg_catalog.pg_class tc ON tc.oid=i.indrelid LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam WHERE tc.relname = 'person' AND i.indrelid = tc.oid;

-- t
SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace WHERE pg_catalog.pg_class.relname = 'person' AND pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p', 'f', 'v', 'm']) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != 'pg_catalog');

-- id|bigint|NULL|t|person / name|character varying|NULL|t|person
SELECT pg_catalog.pg_attribute.attname AS name, pg_catalog.format_type(pg_catalog.pg_attribute.atttypid, pg_catalog.pg_attribute.atttypmod) AS format_type, (SELECT pg_catalog.pg_get_expr(pg_catalog.pg_attrdef.adbin, pg_catalog.pg_attrdef.adrelid) AS pg_get_expr_1 FROM pg_catalog.pg_attrdef WHERE pg_catalog.pg_attrdef.adrelid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_attrdef.adnum = pg_catalog.pg_attribute.attnum AND pg_catalog.pg_attribute.atthasdef) AS "default", pg_catalog.pg_attribute.attnotnull AS not_null, pg_catalog.pg_class.relname AS table_name FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_attribute ON pg_catalog.pg_class.oid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_attribute.attnum > 0 AND NOT pg_catalog.pg_attribute.attisdropped JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace WHERE pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p']) AND pg_catalog.pg_class.relname IN ('person') ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_attribute.attnum;

-- person_id_key|{id}
SELECT attr.conname, array_agg(CAST(attr.attname AS TEXT) ORDER BY attr.ord) AS cols FROM (SELECT con.conname AS conname, con.ord AS ord, pg_attribute.attname FROM pg_catalog.pg_attribute JOIN (SELECT pg_constraint.conrelid, pg_constraint.conname, unnest(pg_constraint.conkey) AS attnum, generate_subscripts(pg_constraint.conkey, 1) AS ord FROM pg_catalog.pg_constraint WHERE pg_constraint.contype = 'p') AS con ON pg_attribute.attnum = con.attnum AND pg_attribute.attrelid = con.conrelid WHERE con.conrelid = 'person'::regclass) AS attr GROUP BY attr.conname ORDER BY attr.conname;

-- public
SELECT DISTINCT namespace.nspname as namespace_name FROM pg_namespace as namespace WHERE namespace.nspname = ANY ( ARRAY['public', 'x'] ) ORDER BY namespace_name;

-- person_id_idx_btree|id|person|t|t|0
WITH rawindex AS (SELECT indrelid, indexrelid, indisunique, indisprimary, unnest(indkey) AS indkeyid, generate_subscripts(indkey, 1) AS indkeyidx, unnest(indclass) AS indclass, unnest(indoption) AS indoption FROM pg_index WHERE indpred IS NULL AND NOT indisexclusion) SELECT indexinfo.relname AS index_name, columninfo.attname AS column_name, tableinfo.relname AS table_name, rawindex.indisunique AS is_unique, rawindex.indisprimary AS is_primary_key, rawindex.indkeyidx - 1 AS column_index FROM rawindex INNER JOIN pg_class AS tableinfo ON tableinfo.oid = rawindex.indrelid INNER JOIN pg_class AS indexinfo ON indexinfo.oid = rawindex.indexrelid INNER JOIN pg_namespace AS schemainfo ON schemainfo.oid = tableinfo.relnamespace LEFT JOIN pg_attribute AS columninfo ON columninfo.attrelid = tableinfo.oid AND columninfo.attnum = rawindex.indkeyid WHERE schemainfo.nspname = ANY ( ARRAY['public'] ) AND tableinfo.relname = 'person' ORDER BY 3, 1, 6;

-- f|b|int8|20
SELECT typinput='pg_catalog.array_in'::regproc as is_array, typtype, typname, pg_type.oid   FROM pg_catalog.pg_type   LEFT JOIN (select ns.oid as nspoid, ns.nspname, r.r           from pg_namespace as ns           join ( select s.r, (current_schemas(false))[s.r] as nspname                    from generate_series(1, array_upper(current_schemas(false), 1)) as s(r) ) as r          using ( nspname )        ) as sp     ON sp.nspoid = typnamespace  WHERE pg_type.oid = 20  ORDER BY sp.r, pg_type.oid DESC;

-- NULL|public|person|id|1|person_id_idx_btree
SELECT        result.TABLE_CAT,        result.TABLE_SCHEM,        result.TABLE_NAME,        result.COLUMN_NAME,        result.KEY_SEQ,        result.PK_NAME FROM      (SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM,   ct.relname AS TABLE_NAME, a.attname AS COLUMN_NAME,   (information_schema._pg_expandarray(i.indkey)).n AS KEY_SEQ, ci.relname AS PK_NAME,   information_schema._pg_expandarray(i.indkey) AS KEYS, a.attnum AS A_ATTNUM FROM pg_catalog.pg_class ct   JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid)   JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)   JOIN pg_catalog.pg_index i ON ( a.attrelid = i.indrelid)   JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid) WHERE true  AND ct.relname = 'person' AND i.indisprimary  ) result where  result.A_ATTNUM = (result.KEYS).x  ORDER BY result.table_name, result.pk_name, result.key_seq;

-- 12
SELECT count(*) FROM pg_attribute WHERE attrelid = 'typed'::regclass;

-- id,flag,small,whole,long,large,ratio,label,blob,uid,at,tags
SELECT string_agg(attname, ',' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'public.typed'::regclass;

-- boolean|smallint|integer|bigint|numeric|double precision|character varying|bytea|uuid|timestamp without time zone|character varying[]
SELECT max(CASE attname WHEN 'flag' THEN atttypid::regtype::text END), max(CASE attname WHEN 'small' THEN atttypid::regtype::text END), max(CASE attname WHEN 'whole' THEN atttypid::regtype::text END), max(CASE attname WHEN 'long' THEN atttypid::regtype::text END), max(CASE attname WHEN 'large' THEN atttypid::regtype::text END), max(CASE attname WHEN 'ratio' THEN atttypid::regtype::text END), max(CASE attname WHEN 'label' THEN atttypid::regtype::text END), max(CASE attname WHEN 'blob' THEN atttypid::regtype::text END), max(CASE attname WHEN 'uid' THEN atttypid::regtype::text END), max(CASE attname WHEN 'at' THEN atttypid::regtype::text END), max(CASE attname WHEN 'tags' THEN atttypid::regtype::text END) FROM pg_attribute WHERE attrelid = 'typed'::regclass;

-- ARRAY|_varchar|NO
SELECT data_type, udt_name, is_nullable FROM information_schema.columns WHERE table_name = 'typed' AND column_name = 'tags';

-- person|2 / secret|2 / typed|12
SELECT relname, relnatts FROM pg_class WHERE relkind = 'r' ORDER BY relname;

-- a|1 / b|2
SELECT v.x, v.y FROM pg_namespace n, (VALUES ('b', 2), ('a', 1)) AS v(x, y) WHERE n.nspname = 'public' ORDER BY 1;

-- person|NULL / secret|NULL / typed|NULL / NULL|zzz
SELECT c.relname, o.name FROM (SELECT relname FROM pg_class WHERE relkind = 'r') c FULL JOIN (VALUES ('zzz')) o(name) ON c.relname = o.name ORDER BY 1;

-- 1|person / 2|secret / 3|typed
SELECT row_number() OVER (ORDER BY relname), relname FROM pg_class WHERE relkind = 'r' ORDER BY 2;

-- i|3 / r|3
SELECT relkind, count(*) FROM pg_class GROUP BY relkind HAVING count(*) > 1 ORDER BY 1;

-- 3|3|f|NULL
SELECT count(DISTINCT relname), count(*) FILTER (WHERE relkind = 'r'), bool_or(relkind = 'i'), max(relacl) FROM pg_class WHERE relkind = 'r' OR relname = 'none';

-- 2 / 1
SELECT 1 FROM pg_namespace WHERE nspname = 'public' UNION SELECT 2 UNION SELECT 1 ORDER BY 1 DESC;

-- person|id / person|name
SELECT t.relname, l.attname FROM pg_class t, LATERAL (SELECT attname FROM pg_attribute a WHERE a.attrelid = t.oid ORDER BY attnum) l WHERE t.relname = 'person';

-- typed
SELECT relname FROM pg_class c WHERE relkind = 'r' AND (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0) > 5;

-- t|f|NULL|f|t
SELECT 1 = ANY (ARRAY[1, 2]), 3 = ANY ('{1,2}'), NULL = 1, 'a' LIKE 'b%', 'aB' ILIKE 'AB' FROM pg_am LIMIT 1;

-- person / secret / typed
SELECT CASE WHEN quote_ident(table_schema) IN (SELECT CASE WHEN trim(s.i) = '"$user"' THEN user ELSE trim(s.i) END FROM unnest(string_to_array(current_setting('search_path'),',')) AS s(i)) THEN quote_ident(table_name) ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table" FROM information_schema.tables WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog') ORDER BY CASE WHEN quote_ident(table_schema) IN (SELECT 'public') THEN 0 ELSE 1 END, 1;

-- 2|t|3
SELECT 1 + 1, has_schema_privilege('public', 'usage'), greatest(1, 3, 2);


-- 1|1|1
SELECT t.indkey[0], t.indkey[t.indnatts - 1] AS "last", CASE t.indnatts WHEN 1 THEN t.indoption[0] + 1 ELSE NULL END FROM (SELECT i.indkey, i.indnatts, i.indoption FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indrelid WHERE c.relname = 'person') t;

-- 1.5|3|-3
SELECT 1.5::numeric, 2.5::int, (-2.5)::int;

-- f|NULL|t
SELECT 5 BETWEEN NULL AND 3, 5 BETWEEN NULL AND 7, (NULL, 1) NOT IN ((2, 3));

-- ab|c|{}|NULL
SELECT left('abc', -1), split_part('a,b,c', ',', -1), string_to_array('', ','), concat_ws(NULL, 'a', 'b');

-- {NULL,1,2}|1-2
SELECT array_agg(x ORDER BY x NULLS FIRST), string_agg(x::text, '-' ORDER BY x) FROM unnest('{2,NULL,1}'::int[]) x;

-- 7
SELECT DISTINCT ON (x % 2) 7 FROM generate_series(1, 3) x UNION SELECT 7;

-- 1
SELECT '1' UNION SELECT 1;
