-- Seeded bug 25: the attempt's outcome ends the newest generation, not the one whose state it had read.
update backline.operation set claimed_generation = desired_generation where id = $1 and token = $2 and nonce = $3
