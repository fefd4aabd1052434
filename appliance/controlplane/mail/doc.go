// Package mail sends what stands in the outbox, on the leader. A message is an object
// of the store (api.MailMessage): what asks for one puts it there, in the batch that
// does what it tells of, and events make the others (events.go). Its text is made when
// it is sent, of a template (compose.go), and it goes through the cluster's mail server
// (send.go). What becomes of it is in its status:
//
//	Waiting ─► taken by the server ─► Sent
//	   ▲  └──► refused for good (5xx), or waited too long ─► Failed
//	   └────── refused for now (4xx), cut off: wait, longer each time
//
// The status is written after the server took the message, so that one is sent twice
// when a leader goes in between: with the same Message-ID. A server that cannot be
// reached, or does not want to talk, delays all messages and fails none of them before
// their time; api.MailStatus says so, and an alert.
package mail
