package api

// SetupState is a node's membership of a cluster.
type SetupState string

// Setup states.
//
//	Unconfigured ─init, restore─► Member ─leave, removed─► Left
//	     └──────join─► Joining ──────┘
//	                                 Member ─its store is gone or damaged─► Damaged ─rebuild─► Member
const (
	SetupUnconfigured SetupState = "Unconfigured"
	SetupJoining      SetupState = "Joining"
	SetupMember       SetupState = "Member"
	SetupLeft         SetupState = "Left"
	SetupDamaged      SetupState = "Damaged"
)

// Setup is what a node reports about itself on its local socket, before and after it
// joins a cluster: GET /v1/setup there. The other setup calls are restricted to the
// machine's root user.
type Setup struct {
	State         SetupState `json:"state"`
	Message       string     `json:"message,omitempty"` // current activity, or why it failed
	Node          string     `json:"node"`
	NodeID        NodeID     `json:"nodeId"`
	Cluster       string     `json:"cluster,omitempty"`
	Addresses     []string   `json:"addresses,omitempty"`     // of the API
	PeerAddresses []string   `json:"peerAddresses,omitempty"` // for the other nodes
	Version       string     `json:"version"`
	Members       int        `json:"members,omitempty"`
	Alive         int        `json:"alive,omitempty"`
	Leader        string     `json:"leader,omitempty"`      // name
	Quorum        bool       `json:"quorum"`                // this node reaches a majority of the cluster
	OperatorKey   string     `json:"operatorKey,omitempty"` // file with the first operator's key, on this node
}

// SetupInit creates a new cluster on the node: POST /v1/setup/init.
type SetupInit struct {
	Cluster string `json:"cluster"`
}

// SetupJoin makes the node a member of a cluster: POST /v1/setup/join.
type SetupJoin struct {
	Token string `json:"token"`
}

// SetupRecover reduces the cluster to this node: POST /v1/setup/recover. Confirm must
// be the node's name.
type SetupRecover struct {
	Confirm string `json:"confirm"`
}
