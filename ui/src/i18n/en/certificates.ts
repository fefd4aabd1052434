// The page of certificates.
export const certificates = {
  'acme.help':
    'The cluster can request certificates for the host names of its portals from a certificate authority by ACME, and renew them. Connections to port 443 of a name must reach the cluster, and no proxy may end TLS before it.',
  'acme.settings': 'Requests',
  'acme.enabled': 'Request and renew certificates',
  'acme.enabledHelp': 'If switched off, certificates that were issued are used until they expire.',
  'acme.directory': 'Directory of the authority',
  'acme.directoryHelp':
    'E.g. https://acme-v02.api.letsencrypt.org/directory. Another directory gets a new account; certificates that were issued are kept until they are renewed.',
  'acme.terms': 'I accept the terms of the authority',
  'acme.termsHelp': 'Read them at its site. They are agreed to when the account is created.',
  'acme.email': 'Contact address',
  'acme.emailHelp': 'Where the authority may reach you. Default: none.',
  'acme.saved': 'Settings saved',
  'acme.portal': 'Portal of the cluster',
  'acme.portalHelp':
    'The host name is that of the portal’s address in the mail settings. A node with a certificate file (--tls-cert) requests none for it.',
  'acme.noAddress':
    'The portal has no https address, so no certificate can be requested for it. Set it in the mail settings.',
  'acme.domains': 'Portals of resellers',
  'acme.domainsHelp':
    'A certificate that a reseller has stored is used while it is valid, and none is requested meanwhile. Host names are approved, and certificates are stored, under',
  'acme.expires': 'Expires',
  'acme.next': 'Next request',
  'acme.problem': 'Last error',
  'acme.state.stored': 'Stored',
  'acme.state.issued': 'Issued',
  'acme.state.renewing': 'Issued, renewal failed',
  'acme.state.requested': 'Being requested',
  'acme.state.failed': 'Failed',
  'acme.state.limited': 'Too many requests',
  'acme.state.expired': 'Expired',
  'acme.state.waiting': 'Not requested yet',
  'acme.state.none': 'None',
  'acme.state.unapproved': 'Not approved',
} as const;
