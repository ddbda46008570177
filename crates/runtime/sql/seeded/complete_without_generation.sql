-- Seeded bug 5: a generation asked for during the attempt goes down with the completion of the older one.
update backline.operation set desired_generation = claimed_generation where id = $1 and token = $2 and nonce = $3
