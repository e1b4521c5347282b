-- The provider's session in which the grant was given: when the provider says that it is over, so is the grant.
alter table provider_identities add column grant_sid text;
