package resolver

import (
	"errors"

	"github.com/miekg/dns"
)

// udpSize is the maximum size of a UDP packet (DNS flag day 2020), which is
// never fragmented.
const udpSize = 1232 // bytes

// question is the query in a guest's packet.
type question struct {
	id      uint16
	q       dns.Question
	recurse bool
	noCheck bool // CD: the guest checks signatures itself
	edns    bool
	dnssec  bool // DO: the guest requests signatures
	size    int  // maximum bytes of a reply over UDP
}

// read decodes a packet. It returns a refusal for one that is not a supported
// query, and nil for both if no reply may be sent.
func read(packet []byte) (*question, *dns.Msg) {
	var m dns.Msg
	if err := m.Unpack(packet); err != nil || m.Response {
		if len(packet) < 12 || m.Response || packet[2]&0x80 != 0 {
			return nil, nil // with replies to replies, two servers would exchange packets for ever
		}
		return nil, refusal(&m, dns.RcodeFormatError)
	}
	if m.Opcode != dns.OpcodeQuery {
		return nil, refusal(&m, dns.RcodeNotImplemented)
	}
	if len(m.Question) != 1 || len(m.Answer) != 0 || len(m.Ns) != 0 || len(m.Extra) > 1 {
		return nil, refusal(&m, dns.RcodeFormatError)
	}
	q := &question{id: m.Id, q: m.Question[0], recurse: m.RecursionDesired, noCheck: m.CheckingDisabled, size: dns.MinMsgSize}
	if len(m.Extra) == 0 {
		return q, nil
	}
	o, ok := m.Extra[0].(*dns.OPT)
	if !ok {
		return nil, refusal(&m, dns.RcodeFormatError)
	}
	if o.Version() != 0 {
		no := refusal(&m, dns.RcodeBadVers)
		no.Extra = []dns.RR{option(false)}
		return nil, no
	}
	q.edns, q.dnssec, q.size = true, o.Do(), min(max(int(o.UDPSize()), dns.MinMsgSize), udpSize)
	return q, nil
}

func refusal(m *dns.Msg, code int) *dns.Msg {
	r := &dns.Msg{MsgHdr: dns.MsgHdr{Id: m.Id, Response: true, Opcode: m.Opcode, RecursionDesired: m.RecursionDesired, RecursionAvailable: true, Rcode: code}}
	if len(m.Question) == 1 {
		r.Question = m.Question
	}
	return r
}

func option(dnssec bool) *dns.OPT {
	o := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}}
	o.SetUDPSize(udpSize)
	if dnssec {
		o.SetDo()
	}
	return o
}

// reply returns a reply without records.
func (q *question) reply(code int) *dns.Msg {
	return &dns.Msg{MsgHdr: dns.MsgHdr{Id: q.id, Response: true, RecursionDesired: q.recurse, RecursionAvailable: true, CheckingDisabled: q.noCheck, Rcode: code},
		Question: []dns.Question{q.q}}
}

// local returns a reply from local data.
func (q *question) local(a answer) *dns.Msg {
	m := q.reply(a.code)
	m.Authoritative = a.code != dns.RcodeRefused
	m.Answer = a.records
	for _, r := range m.Answer {
		r.Header().Name = q.q.Name // in the guest's spelling
	}
	if a.soa != nil {
		m.Ns = []dns.RR{a.soa}
	}
	return m
}

// relayed returns the reply of another resolver.
func (q *question) relayed(from *dns.Msg) *dns.Msg {
	m := q.reply(from.Rcode)
	m.AuthenticatedData, m.Truncated = from.AuthenticatedData, from.Truncated
	m.Answer, m.Ns = from.Answer, from.Ns
	for _, r := range from.Extra {
		switch r.(type) {
		case *dns.OPT, *dns.TSIG, *dns.SIG: // these concern only the connection to that resolver
		default:
			m.Extra = append(m.Extra, r)
		}
	}
	return m
}

// pack encodes a reply into at most size bytes.
func (q *question) pack(m *dns.Msg, size int) ([]byte, error) {
	if q.edns {
		m.Extra = append(m.Extra, option(q.dnssec))
	} else if m.Rcode > 0xf {
		m.Rcode = dns.RcodeServerFailure // without EDNS a code has 4 bits
	}
	m.Truncate(size)
	b, err := m.Pack()
	if err == nil && len(b) > size {
		err = errors.New("the reply cannot be truncated")
	}
	return b, err
}
