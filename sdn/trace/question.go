package trace

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
)

// Question is a packet: its source, destination and protocol.
type Question struct {
	// From and To are a port or an external address.
	From, To End
	Protocol api.Protocol // tcp, udp, icmp or icmp6
	Port     uint16       // for tcp and udp
	// Name returns the name of an ID; nil: IDs are used.
	Name func(id string) string
}

// End is an end of a connection: one of the two fields is set.
type End struct {
	Port    sdn.PortID
	Address netip.Addr
}

// ParseWhat parses "tcp/443", "udp/53", "icmp" or "icmp6".
func ParseWhat(text string) (api.Protocol, uint16, error) {
	name, number, has := strings.Cut(strings.ToLower(text), "/")
	bad := func() (api.Protocol, uint16, error) {
		return "", 0, api.Errorf(api.CodeInvalid, "%.40q is not a valid protocol and port", text).WithHint("use e.g. tcp/443, udp/53, icmp or icmp6")
	}
	switch p := api.Protocol(name); p {
	case api.ProtocolICMP, api.ProtocolICMP6:
		if has {
			return bad()
		}
		return p, 0, nil
	case api.ProtocolTCP, api.ProtocolUDP:
		port, err := strconv.ParseUint(number, 10, 16)
		if err != nil || port == 0 {
			return bad()
		}
		return p, uint16(port), nil
	}
	return bad()
}

func (q Question) what() string {
	if q.Port == 0 {
		return string(q.Protocol)
	}
	return string(q.Protocol) + "/" + strconv.Itoa(int(q.Port))
}

func (q Question) name(id string) string {
	if q.Name != nil {
		if n := q.Name(id); n != "" {
			return n
		}
	}
	return id
}

func (q Question) port(p sdn.PortID) string {
	if i, ok := p.Instance(); ok {
		return q.name(string(i))
	}
	return string(p)
}

func (q Question) end(e End) string {
	if e.Port != "" {
		return q.port(e.Port)
	}
	return e.Address.String()
}
