// The properties of an object: terms and values, without those that have no value.
import {
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
} from '@patternfly/react-core';
import type { ReactNode } from 'react';

export function Rows({ rows }: { rows: [string, ReactNode][] }) {
  return (
    <DescriptionList isHorizontal isCompact>
      {rows
        .filter(([, v]) => Boolean(v))
        .map(([term, value]) => (
          <DescriptionListGroup key={term}>
            <DescriptionListTerm>{term}</DescriptionListTerm>
            <DescriptionListDescription>{value}</DescriptionListDescription>
          </DescriptionListGroup>
        ))}
    </DescriptionList>
  );
}
