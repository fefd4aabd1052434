package lease

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"

	"github.com/basalt-gpu/basalt/api"
)

// Leader is this node's view of the election.
type Leader interface {
	// Verify confirms with a majority that this node leads now and returns its term
	// after that.
	Verify(ctx context.Context) (term uint64, err error)
	IsLeader() bool
	LeaderID() api.NodeID // empty if not known
}

// Server answers heartbeats and judges the nodes on the leader. Every member has
// one; it does nothing before Elected.
type Server struct {
	self   api.NodeID
	leader Leader
	rounds rounds
	now    func() Instant

	mu sync.Mutex // guards g
	g  *Granter
}

// NewServer returns the Server of a node. If now is nil, the boot clock is used.
func NewServer(self api.NodeID, leader Leader, now func() Instant) *Server {
	if now == nil {
		now = Now
	}
	return &Server{self: self, leader: leader, now: now, rounds: rounds{verify: leader.Verify}, g: NewGranter(self)}
}

// Elected begins a term. The members must be read after Raft's Barrier in that
// term.
func (s *Server) Elected(term uint64, members []Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.g.Elected(s.now(), term, members)
}

// Deposed ends the term.
func (s *Server) Deposed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.g.Deposed()
}

// Members updates the list of nodes from the store. It must be called after every
// change of a node's assignment and of the membership.
func (s *Server) Members(members []Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.g.Members(s.now(), members)
}

// Revoke records an operator's confirmation that the node is off (Granter.Revoke).
func (s *Server) Revoke(node api.NodeID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.g.Term() == 0 {
		return api.Errorf(api.CodeUnavailable, "this node is not the leader of the cluster").WithHint("try again in a few seconds")
	}
	if !s.g.Revoke(node) {
		return api.Errorf(api.CodeNotFound, "node %s is not a member of the cluster", node)
	}
	return nil
}

// Reports records this node's own opinions as a witness.
func (s *Server) Reports(reports []PathReport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.g.RecordReports(s.now(), s.self, reports)
}

// Verdicts returns the verdicts on all nodes and the current time. They are empty
// when this node does not lead. Fenced verdicts must be carried out in
// Verdict.Term.
func (s *Server) Verdicts() (Instant, []Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	return now, s.g.Verdicts(now)
}

// Heartbeat answers a heartbeat. It may come from the node itself or from the
// member that relays it; the certificate of either is sufficient.
func (s *Server) Heartbeat(ctx context.Context, h Heartbeat) Answer {
	arrived := s.now()
	if err := h.Check(); err != nil {
		return Answer{V: wireVersion, Reason: err.Error()}
	}
	elsewhere := Answer{V: wireVersion, NotLeader: true, Leader: s.leader.LeaderID(), Reason: "this node is not the leader of the cluster"}
	if !s.leader.IsLeader() {
		return elsewhere
	}
	term, err := s.rounds.ask(ctx)
	if err != nil {
		elsewhere.Leader, elsewhere.Reason = "", "this node cannot prove that it still leads the cluster"
		return elsewhere
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.g.Receive(s.now(), arrived, term, h)
}

// ServeHTTP serves Heartbeat as POST HeartbeatPath.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var h Heartbeat
	if err == nil {
		h, err = DecodeHeartbeat(b)
	}
	w.Header().Set("Content-Type", "application/json")
	var out any
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		out = api.Errorf(api.CodeInvalid, "%v", err).WithHint("check that both nodes run the same version")
	} else {
		out = s.Heartbeat(r.Context(), h)
	}
	_ = json.NewEncoder(w).Encode(out)
}
