package appgateway

import "time"

// limits are the limits of a node's gateway.
type limits struct {
	connections int
	ofAddress   int // connections of one address
	visits      int
	ofHolder    int // visits of one session or key
	ofVisit     int // requests at a time
	streams     int // requests at a time of one HTTP/2 connection

	// Bytes of a body that the instance does not read, of a request and of all requests
	// of an HTTP/2 connection. A browser sends the requests to all instances over one
	// connection, so that an upload that is not read must not use all of it.
	unread, unreadOfConnection int

	headerTime time.Duration // for a request's header, and for TLS
	idleTime   time.Duration // until a connection without a request is closed
	visitIdle  time.Duration // until a visit without a request ends; the next one is admitted again
	dialTime   time.Duration
	pingTime   time.Duration // until an HTTP/2 connection without traffic is checked
	silentTime time.Duration // until a client that does not answer or receive is disconnected

	// Until an idle connection to an instance is closed: less than the time after which
	// servers do (Node.js and uvicorn: 5 s), as a request that meets the end of its
	// connection fails unless it can be repeated.
	poolIdle time.Duration

	headers int // bytes of a request's or a response's header
}

var usual = limits{connections: 4096, ofAddress: 256, visits: 4096, ofHolder: 64, ofVisit: 256, streams: 128,
	unread: 512 << 10, unreadOfConnection: 4 << 20,
	headerTime: 10 * time.Second, idleTime: 2 * time.Minute, visitIdle: 10 * time.Minute, dialTime: 10 * time.Second,
	pingTime: 30 * time.Second, silentTime: time.Minute, poolIdle: 4 * time.Second, headers: 64 << 10}
