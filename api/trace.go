package api

import "net/netip"

// TraceQuestion describes a packet to trace through the network.
type TraceQuestion struct {
	// Project is whose networks are visible; empty for an operator, who sees all.
	Project  ProjectID
	From, To TraceEnd
	// Packet is the first packet of a connection: "tcp/443", "udp/53", "icmp", "icmp6".
	Packet string
}

// TraceEnd is one end of a packet's path; exactly one of the two fields is set.
type TraceEnd struct {
	Instance InstanceID
	Address  netip.Addr
}
