//go:build unix

package web

// routes are all calls of the API, named as the command names them.
var routes = []route{
	post("/v1/enqueue", oneBody, "Accept one message. It is durable when the answer comes.", enqueue),
	post("/v1/enqueue-batch", batchBody, "Accept many messages in one commit, or none of them.", enqueueBatch),
	post("/v1/claim", smallBody, "Lease the oldest due messages, after reaping the queue's leases that are over. Nothing due is an empty list.", claim),
	post("/v1/load", smallBody, "Lease one named message whatever its schedule, and take over a lease that is over.", load),
	post("/v1/ack", smallBody, "Settle a message for good.", ack),
	post("/v1/release", smallBody, "Return a message, at once or after a delay, without counting a failure.", release),
	post("/v1/retry", smallBody, "Return a message after a failure, or set it aside as failed at the cap.", retry),
	post("/v1/extend", smallBody, "Move the deadline of a claim to now and the lease.", extend),
	post("/v1/fail", smallBody, "Set a message aside as failed.", fail),
	post("/v1/reap", smallBody, "End the leases that are over, or one named claim whatever its deadline.", reap),
	post("/v1/reprocess", smallBody, "Return a failed message to its queue.", reprocess),
	post("/v1/purge", smallBody, "Remove a failed message for good.", purge),
	post("/v1/pause", smallBody, "Let claims of a queue find nothing.", pause),
	post("/v1/resume", smallBody, "Let claims of a queue find messages again.", resume),

	get("/v1/status", "Gauges and counters of the queues, in one snapshot.", status),
	get("/v1/messages", "The live messages of a queue in order of enqueue, without payloads.", messages),
	get("/v1/message", "The live generations of one ID, the older first, with payloads.", message),
	get("/v1/failed", "Failed messages of a namespace in order of their names, without payloads.", failed),
	get("/v1/failed-message", "One failed message, with its payload.", failedMessage),
	get("/v1/stats", "What the server's handle did since it was opened.", stats),
}
