//go:build unix

// Package web serves one open store to programs in other languages and to people: a JSON
// API over the contract of package queue, a page, and /metrics. It is what "holdfast
// serve" runs; docs/serve.md has it from the outside.
//
// # What it guards
//
// It listens on a loopback address or a unix socket and nowhere else ([Listen]). Whatever
// tells or changes something of the store needs the token, which is compared in constant
// time; the page's files and the description of the API tell nothing of it and need none.
// The Host of a request must be a loopback address or localhost, so that no web page can
// reach the server under a name of its own (DNS rebinding); no answer allows another origin
// to read it. Requests are bounded in size and in time.
//
// # Claims
//
// The server cannot prove a client dead: it is the server that the kernel knows, not who
// asked it. So a claim through it names no holder, must have a deadline, and outlives the
// server. Leases that are over are reaped by the next claim of their queue, and every few
// seconds by one that waits.
package web
