// Soak runs for hours everything that a terrarium does at once: messages with producers and
// readers, graphs that merge and split, creatures that come and go, modules that are replaced,
// timers, requests, subscribers that fall behind, searches, pruning, and restarts. It keeps
// records of its own, outside of the terrarium, and checks them:
//
//   - Each lane's reader gets every message of its writer once and in order.
//   - What comes from the other lane of a pair, while they are joined, comes in order and not
//     twice.
//   - Each clock's reader gets every tick once and in order.
//   - A subscriber that continues from its cursor gets every event it would have got
//     otherwise, in the order of their times within a session.
//   - All sessions verify after every restart.
//
// Meanwhile it records memory, goroutines, files, descriptors, rates and the latency of
// requests, as a table and as a picture. It fails if a check of the records fails, or if what
// a process holds keeps growing: see growth.
//
//	go run ./cmd/internal/soak -for 1h -out bin/soak
package main
