package metadata

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Limits of a request.
const (
	maxPath   = 256
	maxHeader = 8 << 10 // bytes
	maxTTL    = 6 * time.Hour
)

// Server serves the guests of one network.
type Server struct {
	network api.NetworkID
	source  Source
	tokens  *tokens
}

// NewServer returns a server for a network. Its tokens are valid only in this
// Server.
func NewServer(network api.NetworkID, source Source) *Server {
	return &Server{network: network, source: source, tokens: newTokens(time.Now)}
}

const tokenPath = "/latest/api/token"

// Headers of version 2 of EC2's interface, which guests may use but need not.
const (
	ttlHeader   = "X-aws-ec2-metadata-token-ttl-seconds"
	tokenHeader = "X-aws-ec2-metadata-token"
)

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Server", "basalt")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		http.Error(w, "request has no valid source address", http.StatusBadRequest)
		return
	}
	instance, ok := s.source.Lookup(s.network, from.Addr().Unmap().WithZone(""))
	if !ok {
		http.Error(w, "no instance has the source address", http.StatusNotFound)
		return
	}
	switch {
	case r.Header.Get("X-Forwarded-For") != "":
		// A proxy in the guest, which may be reachable from outside.
		http.Error(w, "proxied requests are not allowed", http.StatusForbidden)
	case len(r.URL.Path) > maxPath:
		http.Error(w, "URL is too long", http.StatusRequestURITooLong)
	case r.Method == http.MethodPut && r.URL.Path == tokenPath:
		s.token(w, r, instance.ID)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are allowed", http.StatusMethodNotAllowed)
	case len(r.Header.Values(tokenHeader)) > 0 && !s.tokens.good(r.Header.Get(tokenHeader), instance.ID):
		http.Error(w, "token is invalid or expired", http.StatusUnauthorized)
	default:
		body, kind, ok := Answer(instance, r.URL.Path)
		if !ok {
			http.Error(w, "not found", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		if r.Method == http.MethodGet {
			_, _ = w.Write(body) // an error means that the guest has disconnected
		}
	}
}

func (s *Server) token(w http.ResponseWriter, r *http.Request, id api.InstanceID) {
	seconds, err := strconv.Atoi(r.Header.Get(ttlHeader))
	if err != nil || seconds < 1 || seconds > int(maxTTL/time.Second) {
		http.Error(w, ttlHeader+": want 1 to 21600 seconds", http.StatusBadRequest)
		return
	}
	w.Header().Set(ttlHeader, strconv.Itoa(seconds))
	_, _ = w.Write([]byte(s.tokens.make(id, time.Duration(seconds)*time.Second)))
}

const (
	plain  = "text/plain; charset=utf-8"
	asJSON = "application/json"
	octets = "application/octet-stream"
)

// versions are the versions of EC2's interface; all have the same answers.
var versions = []string{"1.0", "2009-04-04", "2016-09-02", "2018-09-24", "2021-03-23", "latest"}

// openstack are the versions of OpenStack's interface.
var openstack = []string{"2012-08-10", "2013-04-04", "2013-10-17", "2015-10-15", "2016-06-30", "2016-10-06", "2017-02-22", "2018-08-27", "latest"}

// Answer returns the response for a path; ok is false if the path does not
// exist.
func Answer(i Instance, path string) (body []byte, kind string, ok bool) {
	path = strings.Trim(path, "/")
	if path == "" {
		return list(versions...), plain, true
	}
	first, rest, _ := strings.Cut(path, "/")
	switch {
	case path == "openstack":
		return list(openstack...), plain, true
	case first == "openstack":
		version, what, _ := strings.Cut(rest, "/")
		if !slices.Contains(openstack, version) {
			return nil, "", false
		}
		return i.openstack(what)
	case !slices.Contains(versions, first):
		return nil, "", false
	}
	switch {
	case rest == "":
		return list("meta-data/", "user-data"), plain, true
	case rest == "user-data":
		return i.UserData, octets, len(i.UserData) > 0
	case rest == "meta-data" || strings.HasPrefix(rest, "meta-data/"):
		body, ok := walk(i.ec2(), strings.Trim(strings.TrimPrefix(rest, "meta-data"), "/"))
		return body, plain, ok
	}
	return nil, "", false
}

// ec2 returns the tree under meta-data: leaves by path. Empty ones are
// omitted.
func (i Instance) ec2() map[string]string {
	tree := map[string]string{
		"instance-id": string(i.ID), "instance-type": i.Flavor, "ami-launch-index": "0",
		"hostname": i.hostname(), "local-hostname": i.hostname(), "mac": i.MAC,
		"placement/availability-zone": i.Node, "placement/region": i.Cluster,
	}
	if i.Address4.IsValid() {
		tree["local-ipv4"] = i.Address4.String()
	}
	if i.Address6.IsValid() {
		tree["ipv6"] = i.Address6.String()
	}
	for n, key := range i.Keys {
		tree["public-keys/"+strconv.Itoa(n)+"/openssh-key"] = key
	}
	for path, value := range tree {
		if value == "" {
			delete(tree, path)
		}
	}
	return tree
}

func (i Instance) hostname() string {
	if i.Hostname != "" {
		return i.Hostname
	}
	return i.Name
}

// walk returns a leaf, or the list of a branch: names, with a slash after
// those of branches.
func walk(tree map[string]string, path string) ([]byte, bool) {
	if leaf, ok := tree[path]; ok {
		return []byte(leaf), true
	}
	prefix := ""
	if path != "" {
		prefix = path + "/"
	}
	var names []string
	for leaf := range tree {
		rest, ok := strings.CutPrefix(leaf, prefix)
		if !ok {
			continue
		}
		name, _, branch := strings.Cut(rest, "/")
		switch {
		case path == "public-keys":
			name += "=key-" + name // EC2's format: index=name
		case branch:
			name += "/"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return list(names...), len(names) > 0
}

func list(names ...string) []byte { return []byte(strings.Join(names, "\n")) }

func (i Instance) openstack(what string) (body []byte, kind string, ok bool) {
	switch what {
	case "":
		names := []string{"meta_data.json", "network_data.json", "vendor_data.json"}
		if len(i.UserData) > 0 {
			names = append(names, "user_data")
		}
		return list(names...), plain, true
	case "user_data":
		return i.UserData, octets, len(i.UserData) > 0
	case "vendor_data.json":
		return []byte("{}"), asJSON, true
	case "meta_data.json":
		type key struct {
			Name string `json:"name"`
			Type string `json:"type"`
			Data string `json:"data"`
		}
		public, keys := map[string]string{}, []key{}
		for n, k := range i.Keys {
			name := "key-" + strconv.Itoa(n)
			public[name] = k
			keys = append(keys, key{name, "ssh", k})
		}
		return encode(map[string]any{"uuid": i.ID, "name": i.Name, "hostname": i.hostname(), "availability_zone": i.Node,
			"project_id": i.Project, "launch_index": 0, "public_keys": public, "keys": keys, "meta": map[string]string{}})
	case "network_data.json":
		var networks []map[string]string
		if i.Address4.IsValid() {
			networks = append(networks, map[string]string{"id": "network0", "link": "card0", "type": "ipv4_dhcp"})
		}
		if i.Address6.IsValid() {
			networks = append(networks, map[string]string{"id": "network1", "link": "card0", "type": "ipv6_dhcpv6-stateful"})
		}
		return encode(map[string]any{"links": []map[string]string{{"id": "card0", "type": "phy", "ethernet_mac_address": i.MAC}},
			"networks": networks, "services": []string{}})
	}
	return nil, "", false
}

func encode(v any) ([]byte, string, bool) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return out.Bytes(), asJSON, err == nil
}
