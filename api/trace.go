package api

import "net/netip"

// TraceQuestion is a packet to follow through the network.
type TraceQuestion struct {
	// Project that asks; empty: an operator, who sees everybody's network.
	Project  ProjectID
	From, To TraceEnd
	// Packet is the first of a connection: "tcp/443", "udp/53", "icmp", "icmp6".
	Packet string
}

// TraceEnd of a packet's way: one of the two is set.
type TraceEnd struct {
	Instance InstanceID
	Address  netip.Addr
}
