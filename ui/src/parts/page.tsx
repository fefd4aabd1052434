// A page's header: its title, which is also the window's and receives the focus after navigation, so that screen
// readers announce the page.
import { Breadcrumb, BreadcrumbItem, PageSection, Title } from '@patternfly/react-core';
import { useEffect, useRef, type ReactNode } from 'react';
import { Link } from 'wouter';
import { productOf, useBranding } from '../api/branding';

let first = true;

interface Props {
  title: string;
  above?: { href: string; title: string };
  actions?: ReactNode;
  children: ReactNode;
}

export function PageBody({ title, above, actions, children }: Props) {
  const product = productOf(useBranding().data);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (!first) heading.current?.focus();
    first = false;
  }, []);
  useEffect(() => {
    document.title = `${title} · ${product}`;
  }, [title, product]);
  return (
    <>
      {above && (
        <PageSection type="breadcrumb">
          <Breadcrumb>
            <BreadcrumbItem
              render={({ className }) => (
                <Link className={className} href={above.href}>
                  {above.title}
                </Link>
              )}
            />
            <BreadcrumbItem isActive>{title}</BreadcrumbItem>
          </Breadcrumb>
        </PageSection>
      )}
      <PageSection>
        <div className="basalt-header">
          <Title headingLevel="h1" tabIndex={-1} ref={heading}>
            {title}
          </Title>
          {actions && <div className="basalt-actions">{actions}</div>}
        </div>
      </PageSection>
      <PageSection isFilled>{children}</PageSection>
    </>
  );
}
