-- 1|a|7 / 2|b|7 / INSERT 0 2
INSERT INTO item (code, paid) VALUES ('a', FALSE), ('b', TRUE) RETURNING id, code, amount;

-- 3|n!|14|C / INSERT 0 1
INSERT INTO "public"."item" ("code", "note", "amount", "paid") VALUES ('c', 'n', 1 + 2 * 3, 1 = 1) RETURNING "id", note || '!', amount * 2 AS twice, upper(code);

-- 23505
INSERT INTO item (code, paid) VALUES ('a', FALSE);

-- 23502
INSERT INTO item (code, amount) VALUES ('z', 1);

-- 23502
INSERT INTO item (code, paid, amount) VALUES ('z', TRUE, NULL);

-- y|3 / z|7 / INSERT 0 2
INSERT INTO item (code, paid, amount) VALUES ('z', TRUE, DEFAULT), ('y', FALSE, 2.5) RETURNING code, amount;

-- INSERT 0 0
INSERT INTO item (code, paid) VALUES ('a', TRUE) ON CONFLICT DO NOTHING RETURNING code;

-- a|8|t / INSERT 0 1
INSERT INTO item (code, paid) VALUES ('a', TRUE) ON CONFLICT (code) DO UPDATE SET paid = excluded.paid, amount = item.amount + 1 RETURNING code, amount, paid;

-- a|15 / d|7 / INSERT 0 2
INSERT INTO item AS i (code, paid) VALUES ('a', TRUE), ('b', TRUE), ('d', FALSE) ON CONFLICT (code) DO UPDATE SET amount = i.amount + excluded.amount WHERE i.code <> 'b' RETURNING i.code, amount;

-- INSERT 0 1
INSERT INTO item (code, paid) VALUES ('d', TRUE), ('e', FALSE) ON CONFLICT ON CONSTRAINT item_code_key DO NOTHING;

-- 21000
INSERT INTO item (code, paid) VALUES ('f', TRUE), ('f', FALSE) ON CONFLICT (code) DO UPDATE SET paid = TRUE;

-- 42P10
INSERT INTO item (code, paid) VALUES ('f', TRUE) ON CONFLICT (amount) DO NOTHING;

-- 42703
INSERT INTO item (code, paid) VALUES ('f', TRUE) ON CONFLICT (code) DO UPDATE SET nothing = 1;

-- 1|a|again/a / INSERT 0 1
INSERT INTO item (id, code, paid) VALUES (1, 'again', TRUE) ON CONFLICT (id) DO UPDATE SET note = excluded.code || '/' || item.code RETURNING id, code, note || '';

-- 15|a / 7|b / INSERT 0 2
INSERT INTO spare (name, id) SELECT code, amount FROM item WHERE code < 'c' ORDER BY code RETURNING id, name;

-- INSERT 0 2
INSERT INTO spare (id, name) SELECT id + 100, name || '2' FROM spare;

-- INSERT 0 1
INSERT INTO spare (id, name) WITH x AS (SELECT 1000 AS n) SELECT n, 'cte' FROM x;

-- 1001|yes / INSERT 0 1
INSERT INTO spare VALUES ((SELECT max(id) + 1 FROM spare), CASE WHEN EXISTS (SELECT 1 FROM item WHERE code = 'b') THEN 'yes' ELSE 'no' END) RETURNING *;

-- 42601
INSERT INTO spare (id) VALUES (5, 'five');

-- 42601
INSERT INTO spare (id, name) VALUES (5);

-- 42701
INSERT INTO spare (id, name, id) VALUES (5, 'five', 5);

-- 22P02
INSERT INTO spare (id, name) VALUES ('x', 'five');

-- 42703
INSERT INTO spare (id, nothing) VALUES (1, 'five');

-- 42P01
INSERT INTO nothing (id) VALUES (1) RETURNING id;

-- 15|a- / 7|b- / UPDATE 2
UPDATE spare SET name = name || CASE WHEN id > 50 THEN '+' ELSE '-' END WHERE id IN (SELECT amount FROM item) RETURNING *;

-- 8|n2 / UPDATE 1
UPDATE item SET amount = amount + 1, note = 'n2' WHERE code = 'c' RETURNING amount, note || '';

-- a|t / c|t / UPDATE 2
UPDATE item SET note = NULL WHERE note IS NOT NULL RETURNING code, note IS NULL;

-- 1001 / UPDATE 1
UPDATE item SET amount = (SELECT max(id) FROM spare) WHERE code = 'd' RETURNING amount;

-- a|a-|15 / UPDATE 1
UPDATE item SET amount = s.id FROM spare s WHERE s.name LIKE 'a%' AND item.code = 'a' AND s.id < 100 RETURNING item.code, s.name, item.amount;

-- 5|f / UPDATE 1
UPDATE item AS i SET (amount, paid) = (5, FALSE) WHERE i.code = 'b' AND NOT i.paid IS NULL RETURNING i.amount, i.paid;

-- 7 / UPDATE 1
UPDATE item SET amount = DEFAULT WHERE code = 'b' RETURNING amount;

-- 12 / UPDATE 1
UPDATE item SET amount = '12' WHERE code = 'b' RETURNING amount;

-- 22P02
UPDATE item SET amount = 'x' WHERE code = 'b';

-- 22003
UPDATE item SET amount = 1500000000 * 2 WHERE code = 'b';

-- 42804
UPDATE item SET amount = TRUE;

-- 42804
UPDATE item SET paid = 1 + 1;

-- 22012
UPDATE item SET amount = 1 / (amount - amount);

-- 42703
UPDATE item SET nothing = 1;

-- 42601
UPDATE item SET amount = 1 + 0, amount = 2;

-- 23502
UPDATE item SET code = NULL WHERE code = 'b';

-- 23505
UPDATE item SET code = lower('A') WHERE code = 'b';

-- UPDATE 0
UPDATE item SET amount = 1 WHERE code = 'no such' RETURNING id;

-- a / b / c / d / e / z / SELECT 6
SELECT "i"."code" FROM "public"."item" AS "i" WHERE 1 = 1 AND "i"."amount" > 6;

-- 14 / SELECT 1
SELECT count(*) FROM item i JOIN spare s ON s.id > i.amount AND s.name <> i.code AND i.paid;

-- a / a- / b / b- / d / SELECT 5
WITH big AS (SELECT code FROM item WHERE amount > 10) SELECT code FROM big UNION SELECT name FROM spare WHERE id < 100;

-- 7 / SELECT 1
SELECT x.n FROM (SELECT count(*) AS n FROM item) x;

-- p|a|16 / u|b|13 / SELECT 2
SELECT CASE WHEN paid THEN 'p' ELSE 'u' END, code::text, amount + 1 FROM item WHERE code IN ('a', 'b');

-- DELETE 0
DELETE FROM spare s USING item WHERE item.amount = s.id AND item.code = 'no such';

-- 107 / 115 / DELETE 2
DELETE FROM spare WHERE id > (SELECT min(id) FROM spare) AND name LIKE '%2' RETURNING id;

-- 1001 / 15 / 7 / DELETE 3
DELETE FROM spare WHERE EXISTS (SELECT 1 FROM item WHERE item.amount = spare.id) RETURNING id;

-- DELETE 0
DELETE FROM spare WHERE id % 2 = 1 RETURNING id * 2, name;

-- 42703
DELETE FROM spare WHERE nothing = 1;

-- BEGIN
BEGIN;

-- g|7 / INSERT 0 1
INSERT INTO item (code, paid) VALUES ('g', FALSE) RETURNING code, amount;

-- 1 / SELECT 1
SELECT count(*) FROM item WHERE code = 'g';

-- UPDATE 1
UPDATE item SET amount = amount * 3 WHERE code = 'g';

-- 21 / SELECT 1
SELECT amount FROM item WHERE code = 'g';

-- INSERT 0 1
INSERT INTO spare VALUES (77, 'seven');

-- seven|g / SELECT 1
SELECT s.name, i.code FROM spare s, item i WHERE s.id = 77 AND i.amount = 21;

-- COMMIT
COMMIT;

-- 21 / SELECT 1
SELECT amount FROM item WHERE code = 'g';

-- BEGIN
BEGIN;

-- INSERT 0 1
INSERT INTO spare VALUES (78, 'eight');

-- 23505
INSERT INTO spare VALUES (77, 'again');

-- 25P02
SELECT 1;

-- 25P02
INSERT INTO spare VALUES (79, 'nine');

-- ROLLBACK
COMMIT;

-- 0 / SELECT 1
SELECT count(*) FROM spare WHERE id > 77 AND id < 100;

-- BEGIN
BEGIN;

-- DELETE 7
DELETE FROM item WHERE code <> 'a';

-- 1 / SELECT 1
SELECT count(*) FROM item;

-- ROLLBACK
ROLLBACK;

-- 8 / SELECT 1
SELECT count(*) FROM item;

-- BEGIN
BEGIN;

-- 0 / SELECT 1
SELECT count(*) FROM spare WHERE id = 80;

-- INSERT 0 1
INSERT INTO spare (id, name) VALUES (80, 'x') ON CONFLICT (id) DO UPDATE SET name = spare.name || 'x';

-- xx / INSERT 0 1
INSERT INTO spare (id, name) VALUES (80, 'x') ON CONFLICT (id) DO UPDATE SET name = spare.name || 'x' RETURNING name;

-- xx / DELETE 1
DELETE FROM spare WHERE id = 80 RETURNING name;

-- 80|new / INSERT 0 1
INSERT INTO spare (id, name) VALUES (80, 'new') RETURNING id, name;

-- COMMIT
END;

-- 80|new / SELECT 1
SELECT id, name FROM spare WHERE id = 80;

-- BEGIN
BEGIN;

-- UPDATE 1
UPDATE spare SET name = 'y' WHERE id = 80;

-- 42703
SELECT nothing FROM spare;

-- ROLLBACK
ROLLBACK;

-- new / SELECT 1
SELECT name FROM spare WHERE id = 80;

-- DELETE 8
DELETE FROM item;

