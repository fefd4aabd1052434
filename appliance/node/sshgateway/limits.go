package sshgateway

import "time"

// limits are the limits of a node's gateway.
type limits struct {
	connections   int
	ofAddress     int // connections of one address
	handshakes    int // of one address at a time
	ofUser        int // connections of one user
	channels      int // of one connection
	shells        int
	shellsOfOwner int // of one user or API key

	handshakeTime time.Duration
	askEvery      time.Duration // interval of keepalives
	askTime       time.Duration // timeout of a keepalive
	idleTime      time.Duration // how long no channel of a connection may receive a byte
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
