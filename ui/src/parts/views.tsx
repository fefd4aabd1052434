// The views of one object, each at its own address.
import { Nav, NavItem, NavList } from '@patternfly/react-core';

export interface View {
  href: string;
  title: string;
  active: boolean;
}

export function Views({ label, views }: { label: string; views: View[] }) {
  return (
    <Nav variant="horizontal-subnav" aria-label={label}>
      <NavList>
        {views.map((v) => (
          <NavItem key={v.href} itemId={v.href} to={`#${v.href}`} isActive={v.active}>
            {v.title}
          </NavItem>
        ))}
      </NavList>
    </Nav>
  );
}
