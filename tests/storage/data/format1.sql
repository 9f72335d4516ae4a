BEGIN TRANSACTION;
CREATE TABLE account (
    subject TEXT NOT NULL PRIMARY KEY,
    epsilon TEXT NOT NULL,
    cost_nanos TEXT NOT NULL,
    unbounded INTEGER NOT NULL CHECK (unbounded IN (0, 1))
) WITHOUT ROWID;
INSERT INTO "account" VALUES('ann','20/3','43333333340',0);
INSERT INTO "account" VALUES('bob','10/3','18000000003',0);
INSERT INTO "account" VALUES('c
"id" é','10/3','0',1);
INSERT INTO "account" VALUES('dora','10/3','36666666670',0);
CREATE TABLE meta (
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "meta" VALUES('created_by','dphmm 0.1.0');
INSERT INTO "meta" VALUES('format','1');
CREATE TABLE plan (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    n_states INTEGER NOT NULL CHECK (n_states >= 1),
    states BLOB NOT NULL,
    description TEXT NOT NULL
);
INSERT INTO "plan" VALUES(1,'fc7fa2cc18bd333b3fdc9f302f3fc16314e664cfa495fc7f681eef6bd752dfff',6,X'7801FB030000FD00FD','{"cost": "22/3", "given_partners": [], "joins": [[5, 3]], "mechanisms": [{"epsilon": "2/3", "name": "staircase", "offset": "0"}], "partners": [[5, 3]]}');
INSERT INTO "plan" VALUES(2,'252c95b53952e3501669459846f60673eb564a6630442f40ea72e80d83c7d180',6,X'7801FB030000FD00FD','{"cost": "4/3", "given_partners": [[5, 3]], "joins": [], "mechanisms": [{"epsilon": "2/3", "name": "staircase", "offset": "1/3"}], "partners": []}');
INSERT INTO "plan" VALUES(3,'447cf90439b81339c5e0b64403ab1511344264dce72c0782cee06efb05b34b08',6,X'7801FB010000F900F9','{"cost": "22/3", "given_partners": [], "joins": [], "mechanisms": [{"epsilon": "2/3", "name": "discrete-knorm"}], "partners": []}');
INSERT INTO "plan" VALUES(4,'f02892eeeb1b8bd83abdadf3cd911d287dcc4143e7bf9e502579f541c22c2439',6,X'78017B000000E100E1','{"cost": "4/3", "given_partners": [], "joins": [], "mechanisms": [{"epsilon": "2/3", "name": "discrete-knorm"}], "partners": []}');
INSERT INTO "plan" VALUES(5,'d740b5667a5917b4d7d95c712f80127d8b12c49235566172f228c88339ed8d00',6,X'7801FB000000F100F1','{"cost": "20/3", "given_partners": [], "joins": [], "mechanisms": [{"epsilon": "2/3", "name": "discrete-knorm"}], "partners": [[3, 4]]}');
INSERT INTO "plan" VALUES(6,'411b78c9254abc5550ba874e4940b265c980d3f98d6c107e74578ba00c81ae64',6,X'7801930100001D001D','{"cost": "4/3", "given_partners": [], "joins": [[5, 3]], "mechanisms": [{"epsilon": "2/3", "name": "staircase", "offset": "1/2"}], "partners": [[5, 3]]}');
INSERT INTO "plan" VALUES(7,'ef69846f4fb5252c3a054b8acc78d872ef4ce82719a7aac84943cd84b0080362',6,X'7801FB030000FD00FD','{"cost": "unbounded", "given_partners": [], "joins": [[5, 2]], "mechanisms": [{"epsilon": "2/3", "name": "staircase", "offset": "1/3"}, {"epsilon": "2/3", "name": "staircase", "offset": "1/3"}], "partners": [[5, 2]]}');
INSERT INTO "plan" VALUES(8,'5ffec1b7b59b59d3c4cc0e01bb3cb52b21adf121005d05cbc8d9fd0d186c21c7',6,X'7801FB030000FD00FD','{"cost": "22/3", "given_partners": [], "joins": [[5, 3]], "mechanisms": [{"epsilon": "2/3", "name": "staircase", "offset": "0"}], "partners": [[5, 3]]}');
CREATE TABLE release (
    session INTEGER NOT NULL REFERENCES session (id),
    t INTEGER NOT NULL CHECK (t >= 1),
    through INTEGER NOT NULL CHECK (through = t OR through > t AND kind = 'skip'),
    kind TEXT NOT NULL CHECK (kind IN ('release', 'skip')),
    z TEXT,
    epsilon TEXT,
    cost TEXT,
    plan INTEGER REFERENCES plan (id),
    secure INTEGER NOT NULL CHECK (secure IN (0, 1)),
    constant INTEGER NOT NULL CHECK (constant IN (0, 1)),
    PRIMARY KEY (session, t),
    CHECK ((kind = 'release') = (z IS NOT NULL)),
    CHECK ((z IS NULL) = (epsilon IS NULL) AND (z IS NULL) = (cost IS NULL) AND (z IS NULL) = (plan IS NULL))
) WITHOUT ROWID;
INSERT INTO "release" VALUES(1,1,1,'release','-3,3','2/3','22/3',1,0,0);
INSERT INTO "release" VALUES(1,2,2,'release','7,-4','2/3','22/3',1,0,0);
INSERT INTO "release" VALUES(1,3,5,'skip',NULL,NULL,NULL,NULL,0,0);
INSERT INTO "release" VALUES(1,6,6,'release','32,-25','2/3','22/3',1,0,0);
INSERT INTO "release" VALUES(1,7,7,'release','5,-1','2/3','22/3',1,0,0);
INSERT INTO "release" VALUES(1,8,8,'release','-1,15','2/3','22/3',1,0,0);
INSERT INTO "release" VALUES(2,1,1,'release','2','2/3','4/3',2,0,0);
INSERT INTO "release" VALUES(2,2,2,'release','14','2/3','4/3',2,0,0);
INSERT INTO "release" VALUES(2,3,5,'skip',NULL,NULL,NULL,NULL,0,0);
INSERT INTO "release" VALUES(2,6,6,'release','9','2/3','4/3',2,0,0);
INSERT INTO "release" VALUES(2,7,7,'release','1','2/3','4/3',2,0,0);
INSERT INTO "release" VALUES(2,8,8,'release','29','2/3','4/3',2,0,0);
INSERT INTO "release" VALUES(3,1,1,'release','0,1','2/3','22/3',3,0,0);
INSERT INTO "release" VALUES(3,2,2,'release','1,1','2/3','4/3',4,0,0);
INSERT INTO "release" VALUES(3,3,5,'skip',NULL,NULL,NULL,NULL,0,0);
INSERT INTO "release" VALUES(3,6,6,'release','6,6','2/3','20/3',5,0,0);
INSERT INTO "release" VALUES(3,7,7,'release','9,2','2/3','4/3',6,0,0);
INSERT INTO "release" VALUES(3,8,8,'release','5,6','2/3','4/3',6,0,0);
INSERT INTO "release" VALUES(4,1,1,'release','0','2/3','inf',7,0,0);
INSERT INTO "release" VALUES(4,2,2,'release','6','2/3','inf',7,0,0);
INSERT INTO "release" VALUES(4,3,5,'skip',NULL,NULL,NULL,NULL,0,0);
INSERT INTO "release" VALUES(4,6,6,'release','-5','2/3','inf',7,0,0);
INSERT INTO "release" VALUES(4,7,7,'release','0','2/3','inf',7,0,0);
INSERT INTO "release" VALUES(4,8,8,'release','29','2/3','inf',7,0,0);
INSERT INTO "release" VALUES(5,1,1,'release','1,1','2/3','22/3',8,0,0);
INSERT INTO "release" VALUES(5,2,2,'release','-13,18','2/3','22/3',8,0,0);
INSERT INTO "release" VALUES(5,3,5,'skip',NULL,NULL,NULL,NULL,0,0);
INSERT INTO "release" VALUES(5,6,6,'release','12,0','2/3','22/3',8,0,0);
INSERT INTO "release" VALUES(5,7,7,'release','-6,8','2/3','22/3',8,0,0);
INSERT INTO "release" VALUES(5,8,8,'release','16,-8','2/3','22/3',8,0,0);
CREATE TABLE session (
    id INTEGER PRIMARY KEY,
    subject TEXT NOT NULL,
    query TEXT NOT NULL,
    options TEXT NOT NULL,
    UNIQUE (subject, query)
);
INSERT INTO "session" VALUES(1,'ann','state','{"constraint":"support","epsilon":"2/3","flat":"thicken","mechanism":"auto","model":"d63e20760331d89d852fb6b0ae72ba06b2912d4db525fa9df0c1e97f0274da27","origin":"","policy":"ed1eed0010cc45dd99e4894ad9e967fa3a969bb870ca29c4684afd92a62b2dc3","protection":"nearest","scope":"global","space":"e83c2472ef0cab7d0c026add197193a1e410c75b3861d9154239bd9f36da9db7","start":"before","thickness":"null"}');
INSERT INTO "session" VALUES(2,'ann','work','{"constraint":"support","epsilon":"2/3","flat":"thicken","mechanism":"auto","model":"d63e20760331d89d852fb6b0ae72ba06b2912d4db525fa9df0c1e97f0274da27","origin":"","policy":"ed1eed0010cc45dd99e4894ad9e967fa3a969bb870ca29c4684afd92a62b2dc3","protection":"nearest","scope":"global","space":"d452924fec7d727989f36fe103d9664aa97318c695a102da86b6e672e39edc24","start":"before","thickness":"null"}');
INSERT INTO "session" VALUES(3,'bob','state','{"constraint":"delta=0.2","epsilon":"2/3","flat":"thicken","mechanism":"auto","model":"d63e20760331d89d852fb6b0ae72ba06b2912d4db525fa9df0c1e97f0274da27","origin":"","policy":"ed1eed0010cc45dd99e4894ad9e967fa3a969bb870ca29c4684afd92a62b2dc3","protection":"nearest","scope":"global","space":"e83c2472ef0cab7d0c026add197193a1e410c75b3861d9154239bd9f36da9db7","start":"before","thickness":"null"}');
INSERT INTO "session" VALUES(4,'c
"id" é','state','{"constraint":"support","epsilon":"2/3","flat":"allow","mechanism":"auto","model":"d63e20760331d89d852fb6b0ae72ba06b2912d4db525fa9df0c1e97f0274da27","origin":"","policy":"ed1eed0010cc45dd99e4894ad9e967fa3a969bb870ca29c4684afd92a62b2dc3","protection":"nearest","scope":"component","space":"d452924fec7d727989f36fe103d9664aa97318c695a102da86b6e672e39edc24","start":"before","thickness":"null"}');
INSERT INTO "session" VALUES(5,'dora','state','{"constraint":"support","epsilon":"2/3","flat":"thicken","mechanism":"staircase","model":"d63e20760331d89d852fb6b0ae72ba06b2912d4db525fa9df0c1e97f0274da27","origin":"480000","policy":"ed1eed0010cc45dd99e4894ad9e967fa3a969bb870ca29c4684afd92a62b2dc3","protection":"nearest","scope":"global","space":"e83c2472ef0cab7d0c026add197193a1e410c75b3861d9154239bd9f36da9db7","start":"before","thickness":"null"}');
INSERT INTO "session" VALUES(6,'eve','state','{"epsilon":"1"}');
COMMIT;
