// Package firewall restricts which packets a node accepts on its declared links, by
// their roles (package hostnet).
//
//	declaration, ports of this node, addresses of the other nodes
//	    └─► Rules (pure) ─► Ruleset (pure, nftables) ─► Host.Install (nft, one transaction)
//
// Services is the table of what Basalt listens on. All rules are in a table of their
// own, "inet basalt"; other tables are never changed. Only declared links are
// filtered: a link that is not declared is the operator's. In nftables a packet must be
// accepted by every table, so what is to be reachable on a declared link has to be
// declared too (hostnet.Allow).
package firewall
