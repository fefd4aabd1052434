package store

// FormatVersion is the version of all that stores of several nodes exchange:
// log entries, snapshots, and what they mean. A cluster's nodes must agree on
// it; it is compared when a node joins. A node that meets an entry of a newer
// version stops (fsm.ApplyBatch): skipping it would make it differ.
// 2: objects have claims. 3: use is rolled up by the hour,
// objects take of quotas, and there is an audit trail. 4: there are events for webhooks. 5: usage records
// are rows, old ones go, and nodes compare the place in the log when they read. 6: instances have histories.
const FormatVersion = 6
