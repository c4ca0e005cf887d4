// Tests of random worlds need fixtures and scenarios, too.
@_exported import SampleShops
