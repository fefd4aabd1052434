package appgateway

import "time"

// limits are the limits of a node's gateway.
type limits struct {
	connections int
	ofAddress   int // connections of one address
	visits      int
	ofHolder    int // visits of one session or key
	ofVisit     int // requests at a time

	headerTime time.Duration // for a request's header, and for TLS
	idleTime   time.Duration // until a connection without a request is closed
	visitIdle  time.Duration // until a visit without a request ends; the next one is admitted again
	dialTime   time.Duration
	headers    int // bytes of a request's or a response's header
}

var usual = limits{connections: 4096, ofAddress: 256, visits: 4096, ofHolder: 64, ofVisit: 256,
	headerTime: 10 * time.Second, idleTime: 2 * time.Minute, visitIdle: 10 * time.Minute, dialTime: 10 * time.Second, headers: 64 << 10}
