export const support = {
  'sgr.help':
    'While a support grant is valid, operators and resellers may enter the instances of its organization: consoles, shells, apps, SSH and commands. The audit log shows what they do. Grants are needed only where the cluster requires consent.',
  'sgr.empty': 'No support grants',
  'sgr.emptyHelp': 'Create one when support should look at your instances.',
  'sgr.emptyStaff': 'Grants appear here when organizations let support into their instances.',
  'sgr.create': 'Allow support access',
  'sgr.valid': 'Valid',
  'sgr.expired': 'Expired',
  'sgr.ends': 'Ends',
  'sgr.reason': 'Reason',
  'sgr.reasonHelp': 'For example the number of a ticket.',
  'sgr.lasts': 'Duration',
  'sgr.revoke': 'Revoke',
  'sgr.revokeHelp': 'Connections of support that need the grant are closed at once.',
  'sgr.require': 'Require consent for support',
  'sgr.requireHelp':
    'Operators and resellers may then enter instances of other organizations only while that organization has a valid support grant. Open connections stay open.',
} as const;
