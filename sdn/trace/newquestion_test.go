package trace

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
)

func TestAsk(t *testing.T) {
	top := testTopology()
	second := top.Ports[2] // db has a second card, in net-front
	second.ID, second.Network, second.MAC, second.Address4 = sdn.PortOf("ins-db", 1), "net-front", "52:54:00:00:00:99", addr("10.64.0.99")
	top.Ports = append(top.Ports, second)
	blue := Own(top, "prj-blue")
	to := func(s string) api.TraceEnd {
		e := end(s)
		if e.Address.IsValid() {
			return api.TraceEnd{Address: e.Address}
		}
		return api.TraceEnd{Instance: api.InstanceID(s)}
	}
	for _, c := range []struct {
		t              sdn.Topology
		from, to, what string
		want           Question
		code           api.Code
	}{
		{blue, "ins-app", "ins-web", "tcp/443", Question{From: end("ins-app"), To: end("ins-web"), Protocol: api.ProtocolTCP, Port: 443}, ""},
		{blue, "ins-db", "ins-web", "icmp", Question{From: endOf("ins-db", 1), To: end("ins-web"), Protocol: api.ProtocolICMP}, ""},
		{blue, "ins-web", "ins-db", "icmp", Question{From: end("ins-web"), To: endOf("ins-db", 1), Protocol: api.ProtocolICMP}, ""},
		{blue, "ins-db", "10.64.0.77", "icmp", Question{From: endOf("ins-db", 1), To: end("10.64.0.77"), Protocol: api.ProtocolICMP}, ""},
		{blue, "ins-db", "198.51.100.1", "icmp", Question{From: end("ins-db"), To: end("198.51.100.1"), Protocol: api.ProtocolICMP}, ""},
		{blue, "10.64.0.6", "ins-web", "udp/53", Question{From: end("ins-app"), To: end("ins-web"), Protocol: api.ProtocolUDP, Port: 53}, ""},
		{blue, "198.51.100.1", "203.0.113.20", "tcp/1", Question{From: end("198.51.100.1"), To: end("203.0.113.20"), Protocol: api.ProtocolTCP, Port: 1}, ""},
		{top, "10.64.0.5", "ins-web", "udp/53", Question{}, api.CodeInvalid}, // in networks of blue and red
		{blue, "10.64.0.200", "ins-web", "udp/53", Question{}, api.CodeNotFound},
		{blue, "ins-red", "ins-web", "udp/53", Question{}, api.CodeState}, // of another project
		{blue, "ins-web", "ins-red", "udp/53", Question{}, api.CodeState},
		{blue, "ins-app", "ins-app", "tcp/1", Question{}, api.CodeInvalid},
		{blue, "10.64.0.6", "fd00:1::6", "tcp/1", Question{}, api.CodeInvalid},
		{blue, "ins-app", "ins-web", "sctp/1", Question{}, api.CodeInvalid},
	} {
		q, err := NewQuestion(c.t, api.TraceQuestion{From: to(c.from), To: to(c.to), Packet: c.what})
		if api.CodeOf(err) != c.code && (c.code != "" || err != nil) {
			t.Errorf("NewQuestion from %s to %s: error = %v, want code %q", c.from, c.to, err, c.code)
		}
		if err == nil && (q.From != c.want.From || q.To != c.want.To || q.Protocol != c.want.Protocol || q.Port != c.want.Port) {
			t.Errorf("NewQuestion from %s to %s = %+v, want %+v", c.from, c.to, q, c.want)
		}
	}
}
