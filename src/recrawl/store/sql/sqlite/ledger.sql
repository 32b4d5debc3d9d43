-- name: ledger_create
-- The one row of a new store.
INSERT INTO ledger (one, store_id, generation, owner, last_token, last_observation, observations)
VALUES (1, ?1, 0, '', 0, 0, 0);

-- name: ledger_generation
-- Who owns the store now; read in every transaction of an owner.
SELECT generation FROM ledger;

-- name: ledger_identity
-- What tells this store from others, and who owns it.
SELECT store_id, generation, owner FROM ledger;

-- name: ledger_take_over
-- A new owner: a number that no earlier one had.
UPDATE ledger SET generation = generation + 1, owner = ?1 RETURNING generation;

-- name: ledger_take_tokens
-- So many tokens for leases; the last of them.
UPDATE ledger SET last_token = last_token + ?1 RETURNING last_token;

-- name: ledger_take_observations
-- Numbers for so many observations; the last of them.
UPDATE ledger SET last_observation = last_observation + ?1, observations = observations + ?1
RETURNING last_observation;

-- name: ledger_drop_observations
-- So many observations were forgotten.
UPDATE ledger SET observations = observations - ?1;

-- name: name_find
-- The number of a name.
SELECT id FROM names WHERE name = ?1;

-- name: name_add
-- A number for a name that has none.
INSERT INTO names (name) VALUES (?1) RETURNING id;
