package sds

import "net"

// BlockDev returns the source as a BlockdevOptions of QEMU's QMP reference.
// luks and ceph are the IDs of the secret objects with the volume's passphrase
// and the key of RBD.User; each may be empty if the source does not need it.
func (s Source) BlockDev(readOnly bool, luks, ceph string) map[string]any {
	node := s.node(luks, ceph)
	// Set on the disk alone: its backing files are opened read-only by default,
	// and must be writable for QEMU's merges.
	node["read-only"] = readOnly
	return node
}

func (s Source) node(luks, ceph string) map[string]any {
	node := map[string]any{"driver": string(s.Format)}
	if s.RBD != nil {
		node["file"] = s.RBD.node(ceph)
	} else {
		node["file"] = map[string]any{"driver": "file", "filename": s.Path}
	}
	if s.Format == QCOW2 {
		node["backing"] = nil // otherwise QEMU opens the file named in the header
		if s.Backing != nil {
			node["backing"] = s.Backing.node(luks, ceph)
		}
	}
	switch {
	case s.Encrypted && s.Format == QCOW2:
		node["encrypt"] = map[string]any{"format": "luks", "key-secret": luks}
	case s.Encrypted:
		node["driver"], node["key-secret"] = "luks", luks
	}
	return node
}

func (r RBD) node(ceph string) map[string]any {
	node := map[string]any{"driver": "rbd", "pool": r.Pool, "image": r.Image}
	if r.Snapshot != "" {
		node["snapshot"] = r.Snapshot
	}
	if r.User != "" {
		node["user"] = r.User
	}
	if ceph != "" {
		node["key-secret"] = ceph
	}
	var servers []any
	for _, m := range r.Monitors {
		if host, port, err := net.SplitHostPort(m); err == nil {
			servers = append(servers, map[string]any{"host": host, "port": port})
		}
	}
	if servers != nil {
		node["server"] = servers
	}
	return node
}
