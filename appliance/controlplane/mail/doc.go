// Package mail sends the messages in the outbox, on the leader. A message is an object
// of the store (api.MailMessage): it is queued in the same batch as the change that it
// is about, or created from an event (events.go). Its text is composed from a template
// when it is sent (compose.go), and it goes through the cluster's mail server
// (send.go). Its status has the outcome:
//
//	Waiting ─► accepted by the server ─► Sent
//	   ▲  └──► rejected permanently (5xx), or waited too long ─► Failed
//	   └────── rejected temporarily (4xx), disconnected: wait, longer each time
//
// The status is written after the server accepted the message, so if the leader fails
// in between, the message is sent twice, with the same Message-ID. A server that cannot
// be reached, or refuses the connection, delays all messages and fails none of them
// before their time; api.MailStatus and an alert report it.
package mail
