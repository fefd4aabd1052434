package sshgateway

import "time"

// limits of a gateway, all of one node.
type limits struct {
	connections   int
	ofAddress     int // connections
	handshakes    int // of one address at a time
	ofUser        int // connections
	channels      int // of one connection
	shells        int
	shellsOfOwner int // of one user or API key

	handshakeTime time.Duration
	askEvery      time.Duration // whether the other side is there
	askTime       time.Duration // how long it may be silent then
	idleTime      time.Duration // without a byte in any channel of a connection
	shellIdle     time.Duration // the same of a shell
	dialTime      time.Duration
	guestTime     time.Duration // for a guest's handshake, also while it boots, and for its answer to a request
	shellBytes    int64         // in and out of one shell
}

var usual = limits{connections: 2048, ofAddress: 128, handshakes: 16, ofUser: 64, channels: 64, shells: 512, shellsOfOwner: 16,
	handshakeTime: 20 * time.Second, askEvery: 30 * time.Second, askTime: 30 * time.Second, idleTime: 12 * time.Hour, shellIdle: time.Hour,
	dialTime: 10 * time.Second, guestTime: 20 * time.Second, shellBytes: 16 << 30}

// maxAuthTries is how many keys a client may offer.
const maxAuthTries = 6
