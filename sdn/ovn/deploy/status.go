package deploy

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Status is a server's answer to cluster/status.
type Status struct {
	Cluster, Server string // IDs
	Address         string
	State           string // "cluster member", "joining cluster", "leaving cluster", …
	Role            string // leader, follower, candidate
	Leader          string // short ID, "self", "unknown"
	Term            uint64
	Servers         []Server
}

// Server is a server in the status of another.
type Server struct {
	Short   string // the first digits of its ID
	Address string
	Self    bool
	// Heard is how long ago it was last heard from; negative: never.
	Heard time.Duration
	// Match is the last log entry that it has, as known to the leader.
	Match uint64
}

// member reports whether the server has joined and is not known to have left.
func (s *Status) member() bool {
	return s.State == "cluster member" || strings.HasPrefix(s.State, "disconnected from the cluster")
}

// joining reports whether the server has never been a member, and has no data.
func (s *Status) joining() bool { return s != nil && s.State == "joining cluster" }

// settled reports whether the server belongs to the cluster, and the cluster
// has a leader.
func (s *Status) settled() bool {
	return s != nil && s.State == "cluster member" && s.Leader != "unknown" && s.Leader != ""
}

func (s *Status) leads() bool { return s.settled() && s.Role == "leader" }

// Limits of an answer.
const (
	maxStatus  = 256 << 10 // bytes
	maxServers = 64
)

var (
	idLine     = regexp.MustCompile(`^[0-9a-f]{4} \(([0-9a-f-]{36})\)$`)
	serverLine = regexp.MustCompile(`^([0-9a-f]{4,36}) \([0-9a-f]{4,36} at ((?:ssl|tcp):[^ )]{1,80})\)(.*)$`)
	heardPart  = regexp.MustCompile(`last msg (\d{1,15}) ms ago`)
	matchPart  = regexp.MustCompile(`match_index=(\d{1,19})`)
)

// ParseStatus parses ovsdb-server's answer to cluster/status (ovsdb(7)).
func ParseStatus(text string) (*Status, error) {
	if len(text) > maxStatus {
		return nil, fmt.Errorf("cluster/status has %d bytes, want at most %d", len(text), maxStatus)
	}
	s := &Status{}
	servers := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if servers {
			if server, ok := parseServer(strings.TrimSpace(line)); ok {
				if len(s.Servers) == maxServers {
					return nil, fmt.Errorf("cluster/status: more than %d servers", maxServers)
				}
				s.Servers = append(s.Servers, server)
			}
			continue
		}
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "Cluster ID":
			s.Cluster = idOf(value)
		case "Server ID":
			s.Server = idOf(value)
		case "Address":
			s.Address = value
		case "Status":
			s.State = value
		case "Role":
			s.Role = value
		case "Leader":
			s.Leader = value
		case "Term":
			s.Term, _ = strconv.ParseUint(value, 10, 64)
		case "Servers":
			servers = true
		}
	}
	if s.Server == "" || s.State == "" {
		return nil, fmt.Errorf("cluster/status contains no server ID and no state: %.100q", text)
	}
	return s, nil
}

func idOf(value string) string {
	if m := idLine.FindStringSubmatch(value); m != nil {
		return m[1]
	}
	return ""
}

func parseServer(line string) (Server, bool) {
	m := serverLine.FindStringSubmatch(line)
	if m == nil {
		return Server{}, false
	}
	s := Server{Short: m[1], Address: m[2], Self: strings.Contains(m[3], "(self)"), Heard: -1}
	if h := heardPart.FindStringSubmatch(m[3]); h != nil {
		ms, err := strconv.ParseInt(h[1], 10, 64)
		if err != nil || ms > int64(100*365*24*time.Hour/time.Millisecond) {
			return Server{}, false
		}
		s.Heard = time.Duration(ms) * time.Millisecond
	}
	if h := matchPart.FindStringSubmatch(m[3]); h != nil {
		s.Match, _ = strconv.ParseUint(h[1], 10, 64)
	}
	return s, true
}
